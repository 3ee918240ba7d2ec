from dataclasses import dataclass
@dataclass(frozen=True)
class DemoArgs:
    json: bool=False
def demo(a): ...
