-- Documents and words of each source of the corpus.
--
-- reads    sample (doc_id, text, source); tokens (doc_id, sentence_id, ids): one row per sentence
-- params   $first_word: the smallest word_id that is not punctuation
-- key      source
-- ordered  by key
with words as (
    select doc_id, sum(len(list_filter(ids, lambda id: id >= $first_word))) as n_words
    from tokens
    group by doc_id
)
select
    coalesce(sample.source, '') as source,
    count(*)::bigint as n_documents,
    coalesce(sum(n_words), 0)::bigint as n_words
from sample
left join words using (doc_id)
group by all
order by all
