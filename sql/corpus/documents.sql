-- One row per document of every document set, in one table.
--
-- reads    documents_raw: all of data/documents/*.parquet, columns by name, with `filename`; a file may lack the
--          optional columns and may hold labels as numbers
-- key      (dataset, doc_id); dataset is the name of the file
-- ordered  because the order of texts decides the order of every table and token log made from them
select
    parse_filename(filename, true, 'both_slash') as dataset,
    cast(doc_id as varchar) as doc_id,
    coalesce(cast(split as varchar), 'all') as split,
    cast(text as varchar) as text,
    cast(text_b as varchar) as text_b,
    cast(label as varchar) as label,
    cast(attribute as varchar) as attribute,
    cast(context as varchar) as context
from documents_raw
order by dataset, doc_id
