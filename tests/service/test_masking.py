"""Numbers in the log of a service: none that may be of a request, and all of the operator's."""

from pathlib import Path

import pytest

from lexveil.faces.service.masking import without_numbers

FOLDERS = [Path("/srv/7/lexveil"), Path("/srv/7/lexveil-2"), Path("/srv/my texts 9")]


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("text 4,711: more than 16 Mi characters", "text #: more than # Mi characters"),
        ("12 of 30 rows, 1.5e-07 s, (3), 4%, 5", "# of # rows, # s, (#), #%, #"),
        ("row 12:7/13 is 2026-11-28", "row #:#/# is #-#-#"),
        ("tem2 S1 at r0.2", "tem2 S1 at r0.#"),
        ("/srv/7/lexveil: 5 entries", "/srv/7/lexveil: # entries"),
        (
            "/srv/7/lexveil/release/ledger 8/ledger.sqlite",
            "/srv/7/lexveil/release/ledger #/ledger.sqlite",
        ),
        ("see /srv/7/lexveil-2/a-1.json, 5 days", "see /srv/7/lexveil-2/a-1.json, # days"),
        ("/srv/my texts 9/ledger/2/x: 3", "/srv/my texts 9/ledger/2/x: #"),
        ("/srv/7/lexveil9 /srv/8 7/lexveil", "/srv/#/lexveil9 /srv/# #/lexveil"),
    ],
)
def test_a_number_stays_only_in_a_name_or_a_path_of_the_operator(line, masked):
    assert without_numbers(line, FOLDERS) == masked


def test_without_folders_every_number_goes():
    assert without_numbers("/srv/7: 5") == "/srv/#: #"


def test_the_cap_of_a_new_ledger_and_paths_are_shown_in_full(service, logged):
    client = service()
    asked = {"texts": ["The fire burned."], "subjects": ["ann"]}
    answer = client.post("/v1/privatize", json=asked)
    cap = answer.json()["record"]["release"]["cap"]
    assert f"WARNING the ledger has a cap from now on: {cap:g} epsilon" in logged.text
    assert "audit: there is no audit of tem S3 in " in logged.text


def test_a_missing_ledger_is_named_by_its_path(service, logged, ledger):
    client = service()
    ledger.rename(ledger.with_name("elsewhere"))
    client.post("/v1/privatize", json={"texts": ["The fire burned."]})
    assert f"ERROR {ledger / 'ledger.sqlite'}: the ledger is missing, although" in logged.text
