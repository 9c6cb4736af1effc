"""Steps that make a rewrite a release.

``preconditions.check(request, model)`` says whether a request may run; ``run.Run`` counts,
rewrites and records; ``charge.open_charge`` charges the ledger between the two passes;
``outputs.writing`` makes files appear together, or not at all.
"""
