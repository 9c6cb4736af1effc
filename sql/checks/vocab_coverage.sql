-- Share of the words of each document set that the vocabulary of each segmentation knows.
--
-- reads    text_words (dataset, segmentation, doc_id, field, n_words, n_covered, n_oov): one row per text;
--          words count, also inside a collocation; punctuation does not
-- key      (dataset, segmentation)
-- ordered  by key, because row order is part of the record that DVC compares
select
    dataset,
    segmentation,
    count(*) as n_texts,
    sum(n_words)::bigint as n_words,
    sum(n_covered)::bigint as n_covered,
    sum(n_oov)::bigint as n_oov,
    coalesce(sum(n_covered)::double / nullif(sum(n_words), 0)::double, 0) as coverage
from text_words
group by dataset, segmentation
order by dataset, segmentation
