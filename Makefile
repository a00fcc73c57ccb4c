PYTHON ?= python

.PHONY: check test evals lint types layers docs docs-fresh bench golden format learn deprecated torch-api gpu
check: lint types layers docs-fresh evals test
test: ; $(PYTHON) -m pytest -n auto --dist loadfile --cov --cov-report=term-missing:skip-covered
evals: ; $(PYTHON) -m pytest -c evals/pyproject.toml -n auto --dist loadfile evals/tests
lint: ; $(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check .
format: ; $(PYTHON) -m ruff check --fix . && $(PYTHON) -m ruff format .
types: ; $(PYTHON) -m mypy && $(PYTHON) -m mypy tests/types/refused.py && $(PYTHON) -m pyright --pythonpath "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
layers: ; $(PYTHON) -c "from importlinter.cli import lint_imports_command as lint; lint()" --no-cache
docs: ; $(PYTHON) -m cogapp -r -P -I docs README.md docs/*.md
docs-fresh: ; $(PYTHON) -m cogapp --check -P -I docs README.md docs/*.md
bench: ; for each in bench/*.py; do $(PYTHON) $$each; done; $(PYTHON) bench/faults.py bench/jobs.jsonl; $(PYTHON) bench/faults.py --ranks; $(PYTHON) bench/faults.py bench/ranks.jsonl; $(PYTHON) bench/faults.py --silent; $(PYTHON) bench/mutants judge --sample 30
gpu: ; TORCHTRIAGE_ON_CUDA=tests/simulation/on_cuda.json $(PYTHON) -m pytest -m gpu tests/simulation
golden: ; GOLDEN=write $(PYTHON) -m pytest tests/report/test_golden.py -q
learn: ; $(PYTHON) learn/leaning.py
deprecated: ; $(PYTHON) learn/deprecated.py
torch-api: ; $(PYTHON) learn/torch_api.py
