"""What makes a rewrite a release.

``preconditions.check(request, model)`` says what may run; ``run.TwoPassRun`` counts, rewrites and
records it; ``charge.open_charge`` pays for it in between; ``outputs.writing`` lets files appear
together, or not at all.
"""
