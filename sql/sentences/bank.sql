-- The sentences of a bank: distinct ones that people could say of many things, chosen by hash and weight.
--
-- reads    candidates (text, weight, n_words, n_known, is_screened): one row per sentence of the public texts, white
--          space folded; the weight of its source, above 0; words without punctuation, those of them that the model
--          knows, and whether one is on the public list of words that do not come out
-- params   $least_words, $most_words, $least_known: limits of n_words, and of n_known / n_words
--          $seed, $size: at most so many sentences
-- key      lower(text): the same sentence in two documents, or with other capitals, is one; its weight is the largest
-- ordered  as they are drawn, so that neither files nor their order change the bank, and because the order of rows is
--          part of the hash of its files
--
-- The sentences of the smallest -ln(1 - u) / weight, u uniform in [0, 1), are a draw by weight, as in
-- sql/corpus/sample.sql; of equal weights they are those of the smallest hash.
with whole as (
    select
        min(text) as text,
        max(weight) as weight,
        min(n_words) as n_words,
        min(n_known) as n_known,
        md5(lower(text) || ':' || $seed::varchar) as hash,
        -- 52 bits of the hash, all of which a double holds
        ('0x' || substr(hash, 1, 13))::bigint / 4503599627370496 as u
    from candidates
    where n_words between $least_words and $most_words
        and n_known >= $least_known * n_words
        and not is_screened
        -- a sentence with its end, and not a line of a table or a list
        and regexp_matches(text, '^["''“‘(]?[A-Za-z].*[.!?…]["''”’)]?$')
    group by lower(text)
)
select text, n_words, n_known
from whole
-- addresses, numbers of persons, places to contact
where not regexp_matches(text, '[@#/\\_|<>{}\[\]]|https?:|www\.', 'i')
    and not regexp_matches(text, '\w\.(com|org|net|edu|gov|info|co|uk|io|de|fr)\b', 'i')
    and not regexp_matches(text, '[0-9]{3}|[0-9][0-9 ().-]{4,}[0-9]')
    and not regexp_matches(text, '[0-9] \w+ (street|st|road|rd|avenue|ave|lane|drive|blvd|suite)\b', 'i')
order by -ln(1 - u) / weight, hash, text
limit $size
