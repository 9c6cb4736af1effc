-- The sentences of a bank: distinct ones that people could say of many things, chosen by hash.
--
-- reads    candidates (text, n_words, n_known, is_screened): one row per sentence of the public texts, white space
--          folded; words without punctuation, those of them that the model knows, and whether one is on the public
--          list of words that do not come out
-- params   $least_words, $most_words, $least_known: limits of n_words, and of n_known / n_words
--          $seed, $size: at most so many sentences
-- key      lower(text): the same sentence in two documents, or with other capitals, is one
-- ordered  by the hash that they are chosen by, so that neither files nor their order change the bank, and because the
--          order of rows is part of the hash of its files
with whole as (
    select min(text) as text, min(n_words) as n_words, md5(lower(text) || ':' || $seed::varchar) as hash
    from candidates
    where n_words between $least_words and $most_words
        and n_known >= $least_known * n_words
        and not is_screened
        -- a sentence with its end, and not a line of a table or a list
        and regexp_matches(text, '^["''“‘(]?[A-Za-z].*[.!?…]["''”’)]?$')
    group by lower(text)
)
select text, n_words
from whole
-- addresses, numbers of persons, places to contact
where not regexp_matches(text, '[@#/\\_|<>{}\[\]]|https?:|www\.', 'i')
    and not regexp_matches(text, '\w\.(com|org|net|edu|gov|info|co|uk|io|de|fr)\b', 'i')
    and not regexp_matches(text, '[0-9]{3}|[0-9][0-9 ().-]{4,}[0-9]')
    and not regexp_matches(text, '[0-9] \w+ (street|st|road|rd|avenue|ave|lane|drive|blvd|suite)\b', 'i')
order by hash, text
limit $size
