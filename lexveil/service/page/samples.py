"""Texts that the page opens with: made up for it, or long in the public domain. Nobody is meant by them."""

from __future__ import annotations

SAMPLES = {
    "a ticket": (
        "Hello, I was charged twice for invoice 20917 on my credit card. Please refund the second payment as soon as "
        "possible, I have attached the bank statement. My landlord in New York wants a higher rent, so I can not wait "
        "until next month. Thanks, Daniela Brandt"
    ),
    "a note": (
        "The patient is a 54 year old woman with high blood pressure and type 2 diabetes. She has had chest pain since "
        "Tuesday and takes aspirin. Her father died of a heart attack. Follow up in two weeks, or sooner if the pain "
        "comes back."
    ),
    "a review": (
        "I wanted to like this film, but the plot makes no sense and the main character spends two hours looking out "
        "of a window. The music is wonderful, though, and the last ten minutes almost made up for the rest."
    ),
    "a novel": (
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
        "it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of "
        "Darkness, it was the spring of hope, it was the winter of despair."
    ),
}
PUBLIC = frozenset(SAMPLES.values())
