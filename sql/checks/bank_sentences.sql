-- Length of each sentence of the bank, its share of known words, and how often the sentence occurs.
--
-- reads    sentences (text, n_words, n_known): one row per sentence
-- key      place, the number of the row
-- ordered  by place, so that totals are added in one order
--
-- A sentence is identified by its hash, so that no message can quote it.
select
    row_number() over () as place,
    md5(lower(text)) as sentence,
    n_words,
    n_known / n_words as coverage,
    (length(trim(text)) = 0 or text is null)::integer as is_blank
from sentences
order by place
