-- Decision about each document of a source: new, changed, duplicate or withdrawn.
--
-- reads    incoming (position, document, content, is_withdrawn): one row per row of the source, hashes of id and content
--          known (document, content, version): every version of every document that was released
--          gone (document): all documents that were ever withdrawn
-- key      document
-- ordered  by position, the first row of the document
--
-- n_rows is the number of rows of a document; all rows after the first are repeats.
with documents as (
    select
        document,
        min(position) as position,
        arg_min(content, position) as content,
        count(*) as n_rows,
        bool_or(is_withdrawn) as is_withdrawn
    from incoming
    group by document
),
newest as (
    select document, max(version) as version, arg_max(content, version) as content
    from known
    group by document
)
select
    documents.position,
    documents.document,
    documents.content,
    documents.n_rows,
    coalesce(newest.version, 0) + 1 as version,
    case
        when documents.is_withdrawn or gone.document is not null then 'withdrawn'
        when newest.document is null then 'new'
        when newest.content = documents.content then 'duplicate'
        else 'changed'
    end as fate
from documents
left join newest using (document)
left join gone using (document)
order by documents.position
