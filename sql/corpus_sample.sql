-- A seeded, order-independent choice of documents; exact duplicates count once.
--
-- reads    corpus (text): one row per document, from any number of shards in any order
-- params   $seed, $max_documents
-- key      doc_id, the md5 of the text: the same text is the same document wherever it stands
-- ordered  by doc_id, because row order is part of the file hash that DVC compares; the choice itself goes by the
--          hash of doc_id and seed, so neither sharding nor a larger corpus reshuffles it
with documents as (
    select md5(text) as doc_id, min(text) as text
    from corpus
    where text is not null and length(trim(text)) > 0
    group by all
),
chosen as (
    select doc_id
    from documents
    order by md5(doc_id || ':' || $seed::varchar), doc_id
    limit $max_documents
)
select doc_id, text
from documents
semi join chosen using (doc_id)
order by doc_id
