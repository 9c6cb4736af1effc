-- A seeded, order-independent choice of documents, by weight; exact duplicates count once.
--
-- reads    corpus (text, source, weight): one row per document, from any number of shards in any order; the weight is
--          its source's, above 0
-- params   $seed, $max_documents
-- key      doc_id, the md5 of the text: the same text is the same document wherever it stands, and is of the source of
--          the largest weight that has it (of equal ones, the last by name)
-- ordered  by doc_id, because row order is part of the file hash that DVC compares; the choice itself goes by the
--          hash of doc_id and seed, so neither sharding nor a larger corpus reshuffles it
--
-- The documents of the smallest -ln(1 - u) / weight, u uniform in [0, 1), are a draw one after the other without
-- replacement, each by its weight (Efraimidis and Spirakis 2006). Of equal weights they are those of the smallest u.
with documents as (
    select
        md5(text) as doc_id,
        min(text) as text,
        max({'weight': weight, 'source': source}) as origin
    from corpus
    where text is not null and length(trim(text)) > 0
    group by all
),
drawn as (
    select
        doc_id,
        origin.weight as weight,
        md5(doc_id || ':' || $seed::varchar) as hash,
        -- 52 bits of the hash, all of which a double holds
        ('0x' || substr(hash, 1, 13))::bigint / 4503599627370496 as u
    from documents
),
chosen as (
    select doc_id
    from drawn
    order by -ln(1 - u) / weight, hash, doc_id
    limit $max_documents
)
select doc_id, text, origin.source as source
from documents
semi join chosen using (doc_id)
order by doc_id
