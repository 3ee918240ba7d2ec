"""The paper's comparison: explorers x domains x tasks x seeds, planned by one shared planner."""
