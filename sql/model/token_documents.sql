-- Number of documents in which each word and each collocation of the corpus occurs.
--
-- reads    sentences (doc, line): the segmented corpus; tokens separated by a space, words of a token joined by _
-- params   $min_documents: tokens of fewer documents are left out
-- key      token
-- ordered  by key, because the results depend on row order
--
-- A word counts wherever it occurs, also inside a collocation; a collocation counts where it is a token of the corpus.
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
