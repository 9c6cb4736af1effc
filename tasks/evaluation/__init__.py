"""What is left of a text for a task, and for an attacker: classifiers, their scores, and how they are compared."""
