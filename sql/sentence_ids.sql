-- Sentences as lists of word numbers, so that n-grams are counted on integers.
--
-- reads    sentences (tokens), type word_enum: every word of the corpus, in word_id order
-- result   ids uinteger[], one row per sentence
-- ordered  not: only counted
select list_transform(string_split(tokens, ' '), lambda word: enum_code(word::word_enum)::ubigint) as ids
from sentences
