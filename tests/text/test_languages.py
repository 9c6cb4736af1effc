"""Seven languages: how texts are cut, which words are function words, which language a text looks
like."""

import pytest
import stopwordsiso
from gensim.models.phrases import ENGLISH_CONNECTOR_WORDS
from hypothesis import given
from hypothesis import strategies as st

from lexveil.core.text.encode import Lexicon, encode
from lexveil.core.text.languages import ELIDED, LANGUAGES, language_of
from lexveil.core.text.languages.detection import function_word_shares, other_language
from lexveil.core.text.languages.scripts import first_without_spaces, script_without_spaces
from lexveil.core.text.normal_forms import has_letters, is_punctuation
from lexveil.core.text.pieces import Pieces
from lexveil.core.text.render import render
from lexveil.core.text.tokenize import is_token, sentences

# Cut by hand: a space between tokens, a bar between sentences.
CUT = {
    "de": {
        "Das geht's: z. B. am 3. Mai.": "das geht's : z . b . am 3 . mai .",
        "Dr. Weber kam. Er blieb.": "dr . weber kam . | er blieb .",
        "Er kam um 10. Dann ging er.": "er kam um 10 . dann ging er .",
        "Obst, d.h. Äpfel bzw. Birnen u. ä. Dinge": "obst , d.h. äpfel bzw . birnen u . ä . dinge",
        "Peter’s Hans' Buch, ’s ist wahr": "peter's hans ' buch , ' s ist wahr",
    },
    "fr": {
        "L'homme n'a qu'une idée.": "l' homme n' a qu' une idée .",
        "Aujourd’hui, c’est-à-dire jusqu’à 10 h.": "aujourd'hui , c' est-à-dire jusqu' à 10 h .",
        "M. Dupont et Mme. Roux, p. ex. ici. Bien !": "m . dupont et mme . roux , p . ex . "
        "ici . | bien !",
    },
    "it": {
        "L'acqua dell'isola è un po' fredda.": "l' acqua dell' isola è un po' fredda .",
        "Quest’anno c'è il sig. Rossi. Ciao!": "quest' anno c' è il sig . rossi . | ciao !",
        "All'inizio, ecc. e così via": "all' inizio , ecc . e così via",
    },
    "es": {
        "¿Qué? ¡No! El Sr. Gil, p. ej., vino.": "¿ qué ? | ¡ no ! | el sr . gil , p . ej . , vino ."
    },
    "nl": {
        "'s Avonds is 't koud, bijv. in z'n huis.": "'s avonds is 't koud , bijv . in z'n huis .",
        "Foto's uit ’s-Hertogenbosch en 's-Gravenhage": "foto's uit 's-hertogenbosch en "
        "'s-gravenhage",
        "Dhr. Jansen zei: 'ja'. Mooi.": "dhr . jansen zei : ' ja ' . | mooi .",
    },
    "pt": {
        "O Sr. Silva bebe copos d'água.": "o sr . silva bebe copos d' água .",
        "A Dra. Lima vive no séc. XX. Sim.": "a dra . lima vive no séc . xx . | sim .",
    },
    "en": {
        "It's Dr. Lee's. I don't 'tis l'amour.": "it's dr . lee's . | i don't ' tis l'amour .",
        "Am I? So am I. So is J. Doe.": "am i ? | so am i . | so is j . doe .",
        "I think, therefore I am": "i think , therefore i am",
        "don't DON’T well-known": "don't don't well-known",
        "one line\nanother line \t": "one line | another line",
        "He said “go.” Then left": 'he said " go . " | then left',
        "in the U.S. for $3,000.50": "in the u.s. for $ 3,000.50",
        "wait....... what?!": "wait ... | what ? !",
        "mail a_b@x.org, see https://a.b/c_d.": "mail a＿b@x.org , see https://a.b/c＿d .",
        "new_york cafe\u0301 café": "new ＿ york café café",
        "": "",
    },
    "sv": {"Det är t. ex. dr. Ek.": "det är t . | ex . | dr . | ek ."},
}
CASES = [(code, text, cut) for code, texts in CUT.items() for text, cut in texts.items()]


@pytest.mark.parametrize(("language", "text", "cut"), CASES)
def test_tokens_and_sentences(language, text, cut):
    assert " | ".join(map(" ".join, sentences(text, language))) == cut


def test_regions_and_unknown_languages():
    assert language_of("de-AT") is LANGUAGES["de"] and language_of("PT_br") is LANGUAGES["pt"]
    assert language_of("en").connectors == ENGLISH_CONNECTOR_WORDS
    assert not language_of("sv").function_words and language_of("sv").code == "sv"


WRITTEN = {
    "de": "am 3. mai geht's, z. b. im haus (bzw. hof)!",
    "fr": "l'homme qu'elle a vu n'est pas d'ici, c'est-à-dire jusqu'à demain.",
    "it": "l'acqua dell'isola è un po' fredda, all'inizio.",
    "es": '¿qué? ¡no! el sr. gil dijo: "hola".',
    "nl": "'s avonds is 't koud in z'n huis; foto's uit 's-hertogenbosch.",
    "pt": "o sr. silva disse-lhe: «copos d'água».",
    "en": "it's \"fine\", don't worry (i hope).",
}


@pytest.mark.parametrize(("language", "text"), WRITTEN.items())
def test_what_is_not_replaced_is_written_as_it_was(language, text):
    encoded = encode([text], Lexicon.build("word", [], None, language))
    assert render(Pieces.of(encoded.forms), encoded.word, encoded.text_of, 1) == [text]


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_a_language_are_tokens_of_it(language):
    """If a word were no token, no text could contain it. A word that begins with one apostrophe
    needs the language's own rule."""
    one = LANGUAGES[language]
    assert all(is_token(word, language) for word in one.function_words | one.connectors)
    assert not is_token("l' homme", language) and is_token("l'", language) == (
        "l'" in ELIDED and "l" in one.elisions
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_function_words_against_another_library(language):
    """The other library's lists are longer and contain content words too; they contain at least
    seven of eight of these words.
    """
    theirs = stopwordsiso.stopwords(language)
    ours = language_of(language).function_words
    own = {word for word in ours - theirs if "'" not in word}
    assert len(own) <= len(ours) / 8, sorted(own)
    assert len(theirs) > len(ours)


TEXTS = {
    "de": "Der Hund ist nicht im Haus, und die Katze hat mit dem Ball auf der Straße "
    "gespielt, weil es schön war.",
    "en": "The dog is not in the house, and the cat has played with the ball on the street "
    "because it was nice.",
    "es": "El perro no está en la casa y el gato ha jugado con la pelota en la calle porque "
    "hacía buen tiempo.",
    "fr": "Le chien n'est pas dans la maison et le chat a joué avec la balle dans la rue "
    "parce qu'il faisait beau.",
    "it": "Il cane non è nella casa e il gatto ha giocato con la palla nella strada perché "
    "faceva bello oggi.",
    "nl": "De hond is niet in het huis en de kat heeft met de bal op de straat gespeeld "
    "omdat het mooi weer was.",
    "pt": "O cão não está na casa e o gato brincou com a bola na rua porque fazia bom tempo "
    "e não havia vento.",
}


def counts_of(text, language):
    words = [
        word for sentence in sentences(text, language) for word in sentence if word[0].isalpha()
    ]
    return {word: words.count(word) for word in words}


@pytest.mark.parametrize("of_text", TEXTS)
def test_which_language_a_text_looks_like(of_text):
    """Cut by the rules of any language, as an operator's model may be of any."""
    for language in (*TEXTS, "sv"):
        found = other_language(counts_of(TEXTS[of_text], language), language)
        assert (None if found is None else found[0]) == (
            None if language == of_text else of_text
        ), (found, language)


def test_nothing_is_said_of_few_words_nor_of_lists():
    assert other_language(counts_of("Der Hund ist nicht im Haus.", "en"), "en") is None
    assert other_language({f"name{i}": 1 for i in range(500)}, "en") is None
    assert function_word_shares({"der": 1, "the": 1, "xyz": 2})["de"] == 0.25
    assert function_word_shares({}) == dict.fromkeys(LANGUAGES, 0.0)


SCRIPTS = {
    "这家餐厅的服务非常好，下次还会再来。": "Chinese",
    "とてもおいしかったので、また行きたいと思います。": "Japanese",
    "อาหารอร่อยมากและบริการดีเยี่ยม": "Thai",
    "អាហារឆ្ងាញ់ណាស់ហើយសេវាកម្មល្អ": "Khmer",
    "အစားအစာကအရမ်းကောင်းပါတယ်": "Myanmar",
    "Review: 这家餐厅的服务非常好，下次还会再来。": "Chinese",
}
FINE = (
    "",
    "The food was fine.",
    "東京",
    "We stayed in 東京都新宿区 and liked it a lot.",
    "Он пришёл домой вчера вечером.",
    "나는 학교에 갔다 그리고 집에 왔다",
    "这家 餐厅 的 服务 非常 好 ， 下次 还 会 再 来 。",
    "😀" * 20,
    "שלום עולם",
    "Bangkok (กรุงเทพมหานคร) is the capital.",
)


def test_scripts_without_spaces():
    assert {text: script_without_spaces(text) for text in SCRIPTS} == SCRIPTS
    assert [text for text in FINE if script_without_spaces(text)] == []
    texts = [*FINE, *SCRIPTS]
    forms = [form for text in texts for sentence in sentences(text) for form in sentence]
    assert first_without_spaces(texts, forms) == (len(FINE), "Chinese")
    assert first_without_spaces(FINE, forms) is None


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
    | st.text("aB1 .'_\n\t…é\u0301😀")
)
def test_a_normal_form_can_be_joined(text):
    """No white space and no underscore, so lines and collocations can be taken apart again."""
    assert all(
        form.split() == [form] and "_" not in form
        for sentence in sentences(text)
        for form in sentence
    )


def test_kinds_of_forms():
    """A picture says something; it must not pass as punctuation, which may leave in clear."""
    assert [
        form for form in (",", "...", "$", "a", "😀", "🏽", "5", "█") if is_punctuation(form)
    ] == [",", "...", "$"]
    assert [form for form in ("a", "5", "█", ",") if has_letters(form)] == ["a", "5"]
