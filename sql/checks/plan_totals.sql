-- Budget of each text, and the spending according to its plan.
--
-- reads    plan (dataset, doc_id, field, n_words, n_tokens, n_perturbed, budget, divisor, epsilon_per_token)
-- key      (dataset, doc_id, field), if the plan is sound
-- ordered  by key, so that totals are added in one order
--
-- Sums of float64 are compared relative to the budget (absolutely below 1). A number that cannot be computed counts as infinite.
with spending as (
    select
        *,
        n_perturbed * epsilon_per_token as planned,
        divisor * epsilon_per_token as divided,
        greatest(1, budget) as scale,
        min(budget) over (partition by dataset) as smallest_budget,
        max(budget) over (partition by dataset) as largest_budget,
        max(epsilon_per_token) over (partition by dataset) as largest_epsilon
    from plan
)
select
    dataset,
    doc_id,
    field,
    n_words,
    n_tokens,
    n_perturbed,
    epsilon_per_token,
    -- greatest() would skip nulls, but an unknown number must stay unknown.
    case when n_perturbed <= n_tokens then 0 else n_perturbed - n_tokens end as n_perturbed_beyond,
    (not coalesce((n_perturbed > 0) = (epsilon_per_token > 0) and isfinite(epsilon_per_token), false))::integer as is_mismatched,
    (not coalesce(budget >= 0 and isfinite(budget) and smallest_budget = largest_budget, false))::integer as is_odd_budget,
    (not coalesce(divisor >= n_perturbed, false))::integer as is_short_divisor,
    -- If a budget is divided by words, all words count, but only those punctuation marks that are perturbed.
    (not coalesce(n_perturbed = 0 or divisor >= n_words, false))::integer as is_without_words,
    (n_perturbed > 0 and not coalesce(epsilon_per_token = largest_epsilon, false))::integer as is_uneven,
    coalesce((planned - budget) / scale, 'infinity'::double) as epsilon_overrun,
    case when n_perturbed = 0 then 0 else coalesce((budget - divided) / scale, 'infinity'::double) end as epsilon_undivided
from spending
order by dataset, doc_id, field
