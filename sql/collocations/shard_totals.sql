-- Totals of one shard, before any n-gram is left out.
--
-- reads    shard (sentence_id, ids): one row per sentence
-- result   one row; a document counts in the shard that has its first sentence
select
    count(*) filter (sentence_id = 0) as n_documents,
    count(*) as n_sentences,
    coalesce(sum(len(ids)), 0)::bigint as n_tokens,
    coalesce(sum(greatest(len(ids) - 1, 0)), 0)::bigint as bigram_tokens,
    coalesce(sum(greatest(len(ids) - 2, 0)), 0)::bigint as trigram_tokens
from shard
