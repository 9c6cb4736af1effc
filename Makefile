.PHONY: help run test quick check clean

help:  ## show this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run:  ## run what is stale of the graph
	uv run lexveil run

test:  ## all tests
	uv run pytest

quick:  ## the quick tests, for daily work
	uv run pytest -m "not slow"

check:  ## style, types, import contracts, generated files, proofs
	uv run ruff check && uv run ruff format --check && uv run mypy && uv run lint-imports && uv run python .ci/reference.py --check && uv run python .ci/proofs.py --check

clean:  ## remove caches of the tools; data, artifacts and the ledger stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .grimp_cache .hypothesis && find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
