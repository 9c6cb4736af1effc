-- How long each sentence of the bank is, how much of it is known, and how often it is there.
--
-- reads    sentences (text, n_words, n_known): one row per sentence
-- key      place, the number of the row
-- ordered  by place, so that totals are taken in one order
--
-- A sentence is named by its hash, so that no message can quote it.
select
    row_number() over () as place,
    md5(lower(text)) as sentence,
    n_words,
    n_known / n_words as coverage,
    (length(trim(text)) = 0 or text is null)::integer as is_blank
from sentences
order by place
