"""The text classifier of the CLMLDP paper: a pretrained transformer, fine-tuned for one epoch."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from lexveil.core.language_models.base import SEPARATOR
from lexveil.core.language_models.local_model import load, load_transformers, one_thread, read_model

MOST_TOKENS = 256  # largest number of tokens of a text, or of both texts of a pair
TEXTS_OF_A_BATCH = 8
RATE = 5e-5
EPOCHS = 1


class Transformer:
    """Text classifier: a pretrained transformer, read from a local folder and fine-tuned by
    transformers' Trainer; nothing is downloaded.

    Source: CLMLDP section 5.1: DeBERTa-v3-base, input of 256 tokens, one epoch. All other settings
    are the Trainer's defaults, which this module states because they change between versions:
    AdamW, batches of 8, a learning rate of 5e-5 that falls linearly to 0.

    The Trainer uses a GPU if there is one. On the CPU, one thread computes.
    """

    name: ClassVar[str] = "transformer"

    def __init__(self, seed: int, folder: str) -> None:
        self.seed = seed
        self.folder = folder
        self._names: list[str] = []
        self._tokenizer: Any = None
        self._trainer: Any = None

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Fine-tune the model on n texts and the class of each; there must be at least two
        different classes.

        Raises:
            RequestError: if the libraries are not installed, or the folder holds no such model.
        """
        what = f"classifier {self.name}"
        transformers = load_transformers(what)
        torch = load("torch", what)
        # Checked now: the Trainer would report the missing package late, with its own message.
        load("accelerate", what)
        self._names = sorted(set(classes))
        number = {name: i for i, name in enumerate(self._names)}
        transformers.set_seed(self.seed)  # the classification layer starts at random
        self._tokenizer, model = read_model(
            "AutoModelForSequenceClassification",
            self.folder,
            "transformer_model",
            what,
            num_labels=len(self._names),
        )
        examples = [
            example | {"labels": number[name]}
            for example, name in zip(self._encoded(texts), classes, strict=True)
        ]
        with tempfile.TemporaryDirectory(prefix="lexveil-transformer-") as folder, one_thread():
            self._trainer = transformers.Trainer(
                model=model,
                args=transformers.TrainingArguments(
                    output_dir=folder,
                    num_train_epochs=EPOCHS,
                    per_device_train_batch_size=TEXTS_OF_A_BATCH,
                    per_device_eval_batch_size=TEXTS_OF_A_BATCH,
                    learning_rate=RATE,
                    seed=self.seed,
                    full_determinism=True,
                    save_strategy="no",
                    logging_strategy="no",
                    report_to="none",
                    disable_tqdm=True,
                    dataloader_pin_memory=torch.cuda.is_available(),
                ),
                train_dataset=examples,
                data_collator=transformers.DataCollatorWithPadding(self._tokenizer),
            )
            # this callback of transformers would write to the run's log
            self._trainer.remove_callback(transformers.PrinterCallback)
            self._trainer.train()
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predict the class of each of n texts."""
        if not texts:
            return []
        with one_thread():
            scores = self._trainer.predict(self._encoded(texts)).predictions
        return [self._names[best] for best in scores.argmax(axis=1)]

    def _encoded(self, texts: Sequence[str]) -> list[dict[str, object]]:
        """Convert each text to model input; a text that contains SEPARATOR is encoded as a pair of
        texts.
        """
        longest = min(MOST_TOKENS, self._tokenizer.model_max_length)
        pairs = (text.split(f" {SEPARATOR} ", 1) for text in texts)
        return [dict(self._tokenizer(*pair, truncation=True, max_length=longest)) for pair in pairs]
