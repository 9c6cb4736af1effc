-- Seeded, order-independent sample of documents by weight; exact duplicates count once.
--
-- reads    corpus (text, source, weight): one row per document, from any number of shards in any order; the weight is
--          the weight of its source, above 0
-- params   $seed, $max_documents
-- key      doc_id, the md5 of the text: equal texts are one document, which belongs to the source with the largest
--          weight that has the text (among equal weights, the last source by name)
-- ordered  by doc_id, because row order is part of the file hash that DVC compares; the hash of
--          doc_id and seed decides the sample, so neither sharding nor a larger corpus changes the order
--
-- The documents with the smallest -ln(1 - u) / weight, u uniform in [0, 1), are a weighted sample without replacement
-- (Efraimidis and Spirakis 2006). With equal weights they are the documents with the smallest u.
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
        -- 52 bits of the hash, which a double holds exactly
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
