-- Hash of the ids and texts of every data set, which identifies the embedded documents among other data sets.
--
-- reads    documents (dataset, doc_id, text, text_b)
-- key      dataset
-- ordered  by key
select
    dataset,
    sha256(string_agg(sha256(concat_ws(chr(31), doc_id, text, coalesce(text_b, ''))), '' order by doc_id)) as sha256
from documents
group by dataset
order by dataset
