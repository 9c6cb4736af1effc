-- Size of the corpus: one row.
--
-- reads    sentences (doc_id, tokens)
-- result   n_tokens is the N of the PMI; bigram_tokens and trigram_tokens count every adjacent pair and triple
with lengths as (
    select doc_id, length(tokens) - length(replace(tokens, ' ', '')) + 1 as n
    from sentences
)
select
    count(distinct doc_id) as n_documents,
    count(*) as n_sentences,
    sum(n)::bigint as n_tokens,
    sum(greatest(n - 1, 0))::bigint as bigram_tokens,
    sum(greatest(n - 2, 0))::bigint as trigram_tokens
from lengths
