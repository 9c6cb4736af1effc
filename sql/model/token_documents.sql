-- In how many documents each word and each collocation of the corpus stands.
--
-- reads    sentences (doc, line): the segmented corpus; tokens separated by a space, words of a token joined by _
-- params   $min_documents: what stands in fewer is left out
-- key      token
-- ordered  by key: row order is part of what is made from it
--
-- A word counts wherever it stands, inside a collocation too; a collocation where the corpus was cut by it.
with occurrences as (
    select
        doc,
        unnest(
            list_concat(
                string_split(replace(line, '_', ' '), ' '),
                list_filter(string_split(line, ' '), lambda token: contains(token, '_'))
            )
        ) as token
    from sentences
),
per_document as (
    select token, doc, count(*) as count
    from occurrences
    where token <> ''
    group by token, doc
)
select
    token,
    sum(count)::bigint as count,
    count(*)::bigint as n_documents
from per_document
group by token
having n_documents >= $min_documents
order by token
