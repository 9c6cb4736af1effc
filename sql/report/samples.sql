-- The texts that the report shows, the same for all runs. The data sets take turns; within a data set, short texts come
-- first, in the order of their hashes.
--
-- reads    documents (dataset, doc_id, text, text_b): the clean baseline
-- params   $datasets: data sets of the texts; $n, $seed
-- key      number, the order of the page; (dataset, doc_id, field)
with texts as (
    select dataset, doc_id, unnest(['text', 'text_b']) as field, unnest([text, text_b]) as source
    from documents
    where dataset in (select unnest($datasets::varchar[]))
),
ranked as (
    select
        *,
        row_number() over (
            partition by dataset
            order by length(source) not between 100 and 260, md5(concat_ws(chr(31), doc_id, field, $seed::varchar)), doc_id, field
        ) as turn
    from texts
    where trim(source) <> ''
),
numbered as (
    select *, row_number() over (order by turn, dataset) as number from ranked
)
select number, dataset, doc_id, field, source
from numbered
where number <= $n
order by number
