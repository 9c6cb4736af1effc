-- The texts that the report shows, the same for all runs: from each data set in turn, first those that
-- are short enough to be read at a glance, chosen by hash.
--
-- reads    documents (dataset, doc_id, text, text_b): the clean baseline
-- params   $datasets: of which data sets; $n, $seed
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
