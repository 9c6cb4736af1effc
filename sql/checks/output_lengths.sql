-- Input, output and inconsistencies of each document of one run.
--
-- reads    inputs (dataset, doc_id, split, text, text_b, label, attribute, context): the input documents
--          documents (the same, n_tokens_in, n_tokens_out, n_words_out, epsilon_spent, n_unprotected): the output
--          ledger (dataset, doc_id, field, position, class, epsilon, action, n_words, word_id): one row per token
--          plan (dataset, doc_id, field, budget): empty for the clean baseline
-- params   $n_vocabulary: rows of the strategy's space, 0 for the clean baseline
-- key      (dataset, doc_id), if the output is sound
-- ordered  by key, so that totals are added in one order
--
-- A budget without a plan is 0, so the baseline needs no special case: any spending of the baseline is an overrun.
-- A comparison with null counts as a fault.
with texts as (
    select
        dataset,
        doc_id,
        field,
        count(*) as n_tokens,
        count(*) filter (action = 'dropped') as n_dropped,
        count(*) filter (action = 'kept') as n_kept,
        coalesce(sum(n_words) filter (action <> 'dropped'), 0)::bigint as n_words_out,
        (
            count(distinct position) <> count(*) or min(position) <> 0 or max(position) <> count(*) - 1
        )::integer as is_misplaced,
        count(*) filter (
            not coalesce(
                class in ('word', 'stopword', 'punctuation', 'oov')
                and action in ('perturbed', 'kept', 'dropped', 'sampled')
                and (action = 'dropped' or n_words between 1 and 3),
                false
            )
        ) as n_unclear,
        count(*) filter (
            not coalesce(
                case
                    when action in ('perturbed', 'sampled') then word_id between 0 and $n_vocabulary - 1
                    else word_id = -1
                end,
                false
            )
        ) as n_foreign,
        count(*) filter (
            not coalesce(isfinite(epsilon) and epsilon >= 0 and (epsilon > 0) = (action = 'perturbed'), false)
        ) as n_mispriced,
        sum(epsilon) as epsilon
    from ledger
    group by dataset, doc_id, field
),
grants as (
    select dataset, doc_id, field, budget from plan
),
ledgers as (
    select
        texts.dataset,
        texts.doc_id,
        sum(n_tokens)::bigint as n_tokens,
        sum(n_dropped)::bigint as n_dropped,
        sum(n_kept)::bigint as n_kept,
        sum(n_words_out)::bigint as n_words_out,
        sum(is_misplaced)::bigint as n_misplaced,
        sum(n_unclear)::bigint as n_unclear,
        sum(n_foreign)::bigint as n_foreign,
        sum(n_mispriced)::bigint as n_mispriced,
        sum(epsilon) as epsilon,
        max(
            coalesce((epsilon - coalesce(grants.budget, 0)) / greatest(1, coalesce(grants.budget, 0)), 'infinity'::double)
        ) as epsilon_overrun
    from texts
    left join grants
        on grants.dataset = texts.dataset and grants.doc_id = texts.doc_id and grants.field = texts.field
    group by texts.dataset, texts.doc_id
),
outputs as (
    select *, 1 as is_there from documents
),
givens as (
    select *, 1 as is_there from inputs
)
select
    coalesce(outputs.dataset, givens.dataset, ledgers.dataset) as dataset,
    coalesce(outputs.doc_id, givens.doc_id, ledgers.doc_id) as doc_id,
    coalesce(outputs.n_tokens_in, 0) as n_tokens_in,
    coalesce(outputs.n_tokens_out, 0) as n_tokens_out,
    coalesce(outputs.n_words_out, 0) as n_words_out,
    coalesce(ledgers.n_dropped, 0) as n_dropped,
    coalesce(outputs.n_unprotected, 0) as n_unprotected,
    (outputs.is_there is null)::integer as is_lost,
    (givens.is_there is null)::integer as is_stray,
    case
        when outputs.is_there is null then 0
        else
            (outputs.dataset is null)::integer + (outputs.doc_id is null)::integer + (outputs.text is null)::integer
            + ((outputs.text_b is null) <> (givens.text_b is null))::integer
    end as n_nulls,
    case
        when outputs.is_there is null or givens.is_there is null then 0
        else
            (outputs.split::varchar is distinct from givens.split::varchar)::integer
            + (outputs.label::varchar is distinct from givens.label::varchar)::integer
            + (outputs.attribute::varchar is distinct from givens.attribute::varchar)::integer
            + (outputs.context::varchar is distinct from givens.context::varchar)::integer
    end as n_miscarried,
    (outputs.text is distinct from givens.text)::integer + (outputs.text_b is distinct from givens.text_b)::integer
        as n_changed,
    coalesce(ledgers.n_misplaced, 0) as n_misplaced,
    coalesce(ledgers.n_unclear, 0) as n_unclear,
    coalesce(ledgers.n_foreign, 0) as n_foreign,
    coalesce(ledgers.n_mispriced, 0) as n_mispriced,
    abs(coalesce(outputs.n_tokens_in, 0) - coalesce(ledgers.n_tokens, 0)) as tokens_in_gap,
    abs(coalesce(outputs.n_tokens_in, 0) - coalesce(ledgers.n_dropped, 0) - coalesce(outputs.n_tokens_out, 0))
        as tokens_out_gap,
    abs(coalesce(outputs.n_words_out, 0) - coalesce(ledgers.n_words_out, 0)) as words_out_gap,
    case
        when outputs.is_there is null or outputs.n_words_out between outputs.n_tokens_out and 3 * outputs.n_tokens_out
            then 0
        when outputs.n_words_out < outputs.n_tokens_out then outputs.n_tokens_out - outputs.n_words_out
        else outputs.n_words_out - 3 * outputs.n_tokens_out
    end as n_words_beyond,
    abs(coalesce(outputs.n_unprotected, 0) - coalesce(ledgers.n_kept, 0)) as unprotected_gap,
    coalesce(ledgers.epsilon_overrun, 0) as epsilon_overrun,
    case
        when outputs.is_there is null then 0
        else
            coalesce(
                abs(outputs.epsilon_spent - coalesce(ledgers.epsilon, 0)) / greatest(1, outputs.epsilon_spent),
                'infinity'::double
            )
    end as epsilon_difference
from outputs
full join givens on givens.dataset = outputs.dataset and givens.doc_id = outputs.doc_id
full join ledgers
    on ledgers.dataset = coalesce(outputs.dataset, givens.dataset)
    and ledgers.doc_id = coalesce(outputs.doc_id, givens.doc_id)
order by dataset, doc_id
