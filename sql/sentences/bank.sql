-- The sentences of a bank: distinct sentences that suit many texts, chosen by hash and weight.
--
-- reads    candidates (text, weight, n_words, n_known, is_screened): one row per sentence of the public texts, white
--          space folded; weight: of the source, above 0; n_words: words without punctuation; n_known: words that the
--          model knows; is_screened: whether a word is on the public list of words that are never an output
-- params   $least_words, $most_words, $least_known: limits of n_words, and of n_known / n_words
--          $seed; $size: largest number of sentences
-- key      lower(text): a sentence in two documents, or with other capitals, counts once, with its largest weight
-- ordered  by the draw, so that neither files nor their order change the bank, and because the order of rows is part of
--          the hash of its files
--
-- The sentences with the smallest -ln(1 - u) / weight, u uniform in [0, 1), are a weighted sample, as in
-- sql/corpus/sample.sql; with equal weights they are the sentences with the smallest hash.
with whole as (
    select
        min(text) as text,
        max(weight) as weight,
        min(n_words) as n_words,
        min(n_known) as n_known,
        md5(lower(text) || ':' || $seed::varchar) as hash,
        -- 52 bits of the hash, which a double holds exactly
        ('0x' || substr(hash, 1, 13))::bigint / 4503599627370496 as u
    from candidates
    where n_words between $least_words and $most_words
        and n_known >= $least_known * n_words
        and not is_screened
        -- a sentence with its final mark, and not a line of a table or a list
        and regexp_matches(text, '^["''“‘(]?[A-Za-z].*[.!?…]["''”’)]?$')
    group by lower(text)
)
select text, n_words, n_known
from whole
-- addresses, telephone and identity numbers, contact details
where not regexp_matches(text, '[@#/\\_|<>{}\[\]]|https?:|www\.', 'i')
    and not regexp_matches(text, '\w\.(com|org|net|edu|gov|info|co|uk|io|de|fr)\b', 'i')
    and not regexp_matches(text, '[0-9]{3}|[0-9][0-9 ().-]{4,}[0-9]')
    and not regexp_matches(text, '[0-9] \w+ (street|st|road|rd|avenue|ave|lane|drive|blvd|suite)\b', 'i')
order by -ln(1 - u) / weight, hash, text
limit $size
