-- Tokens, budget and spending of one plan, per data set: each text has the budget, and spends epsilon_spent on average;
-- epsilon_per_token is the mean over the tokens that get noise, null without such tokens.
--
-- reads    plan (dataset, doc_id, field, n_words, n_tokens, n_perturbed, budget, epsilon_per_token)
-- key      dataset
-- ordered  by key, which is the order of the report's tables
--
-- Spending is added up as decimal: a sum of float64 depends on the order in which threads deliver rows.
with totals as (
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
)
select
    *,
    n_words / n_texts as words_per_text,
    n_tokens / n_texts as tokens_per_text,
    n_perturbed / n_texts as perturbed_per_text,
    epsilon_planned / nullif(n_perturbed, 0) as epsilon_per_token,
    epsilon_planned / n_texts as epsilon_spent,
    epsilon_planned / n_texts / nullif(budget, 0) as share_of_budget
from totals
order by dataset
