"""First use by somebody without a project, and commands that are shown and can be run again."""

import shlex

from lexveil.faces.cli.main import APP
from lexveil.faces.cli.options import command_of, requested
from lexveil.io.request import FileRequest, Request

SHOWN = {
    "protection": None,
    "mechanism": "madlib",
    "strategy": "S3",
    "epsilon": 5.125,
    "average_words": 1e5,
    "max_token_epsilon": 8.0,
    "consistent": True,
    "keep_layout": True,
    "stopwords": "drop",
    "punctuation": "keep",
    "oov": "sample",
    "shares": {"stopwords": 0.5, "numbers": 2.0},
    "screen": "none",
    "detector": "presidio",
    "spacy_model": "en core",
    "protect": "my list.txt",
    "types": {"PERSON": "pseudonym", "CARD": "digits"},
    "pseudonyms": "names.txt",
    "spans_column": "found spans",
    "without_guarantee": True,
    "workers": 2,
    "on_unsupported": "withhold",
}


def test_parameters_without_a_project_are_said_to_be_ignored(outside, cli):
    (outside / "in.txt").write_text("the police said no\n", encoding="utf-8")
    assert "params.yaml is ignored" not in cli("inspect", "in.txt", "--model", "toy").err
    (outside / "params.yaml").write_text("policy: {stopwords: drop}\n", encoding="utf-8")
    said = cli("inspect", "in.txt", "--model", "toy").err
    assert "lexveil.toml is ignored" not in said
    assert (
        said.count("params.yaml is ignored, because this folder is no project") == 1
        and "`lexveil init DIR`" in said
    )


def test_settings_without_a_project_are_said_to_be_ignored(outside, cli):
    (outside / "in.txt").write_text("the police said no\n", encoding="utf-8")
    (outside / "lexveil.toml").write_text("[ledger]\ncap = 1.0\n", encoding="utf-8")
    said = cli("inspect", "in.txt", "--model", "toy").err
    assert said.count("lexveil.toml is ignored, because this folder is no project") == 1


def test_a_command_that_is_shown_makes_the_request_that_it_is_of():
    """A shown command has every option of the request except the input and the model."""
    assert set(Request.model_fields) - set(SHOWN) == {
        *(
            "document_budget",
            "recovery",
            "band",
            "share_list",
            "allow",
            "mode",
            "seed",
            "on_exhausted",
            "bank",
            "unit",
            "sentences",
        ),
    }
    request = FileRequest.of(SHOWN)
    shown = command_of(request, "my file.csv", [], "en+sentiment=1")
    _, bound, _ = APP.parse_args(shlex.split(shown)[1:], exit_on_error=False)
    assert (
        requested(bound.arguments["how"], FileRequest) == request
        and "--model en+sentiment=1" in shown
    )
