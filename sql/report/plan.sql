-- What one plan cuts texts into, grants and spends, per data set.
--
-- reads    plan (dataset, doc_id, field, n_words, n_tokens, n_perturbed, budget, epsilon_per_token)
-- key      dataset
-- ordered  by key: the order of the report's tables
--
-- Spending is added up as decimal: a sum of float64 differs with the order in which threads deliver rows.
select
    dataset,
    count(distinct doc_id) as n_documents,
    count(*) as n_texts,
    sum(n_words)::bigint as n_words,
    sum(n_tokens)::bigint as n_tokens,
    sum(n_perturbed)::bigint as n_perturbed,
    max(budget) as budget,
    sum((n_perturbed * epsilon_per_token)::decimal(38, 9))::double as epsilon_planned
from plan
group by dataset
order by dataset
