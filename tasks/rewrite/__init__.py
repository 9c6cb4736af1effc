"""Where text and noise meet: a batch of texts goes in with its budgets, rewritten texts and their ledger come out."""
