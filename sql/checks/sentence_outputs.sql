-- Output and inconsistencies of each document of one run of strategy S5 (sentences).
--
-- reads    inputs (dataset, doc_id, split, text, text_b, label, attribute, context): the input documents
--          documents (the same, n_tokens_in, n_tokens_out, n_words_out, epsilon_spent, n_unprotected): the output
--          ledger (dataset, doc_id, field, position, class, epsilon, action, n_words, word_id): one row per sentence
-- params   $n_bank: number of sentences of the bank; $per_text: sentences per text; $epsilon: epsilon of a sentence
-- key      (dataset, doc_id), if the output is sound
-- ordered  by key, so that totals are added in one order
--
-- A comparison with null counts as a fault.
with drawn as (
    select
        dataset,
        doc_id,
        count(*) as n_sentences,
        sum(n_words)::bigint as n_words,
        count(*) filter (not coalesce(class = 'sentence' and action = 'perturbed', false)) as n_unclear,
        count(*) filter (not coalesce(word_id between 0 and $n_bank - 1, false)) as n_foreign,
        count(*) filter (not coalesce(position between 0 and $per_text - 1, false)) as n_misplaced,
        count(*) filter (not coalesce(abs(epsilon - $epsilon) <= 1e-9 * $epsilon, false)) as n_mispriced,
        sum(epsilon) as epsilon
    from ledger
    group by all
),
outputs as (
    select *, 1 as is_there from documents
),
givens as (
    select *, 1 as is_there from inputs
)
select
    coalesce(outputs.dataset, givens.dataset, drawn.dataset) as dataset,
    coalesce(outputs.doc_id, givens.doc_id, drawn.doc_id) as doc_id,
    coalesce(outputs.n_tokens_in, 0) as n_tokens_in,
    coalesce(outputs.n_tokens_out, 0) as n_tokens_out,
    coalesce(outputs.n_words_out, 0) as n_words_out,
    0 as n_dropped,
    coalesce(outputs.n_unprotected, 0) as n_unprotected,
    (outputs.is_there is null)::integer as is_lost,
    (givens.is_there is null)::integer as is_stray,
    (outputs.split is distinct from givens.split)::integer
    + (outputs.label is distinct from givens.label)::integer
    + (outputs.attribute is distinct from givens.attribute)::integer
    + (outputs.context is distinct from givens.context)::integer
    + ((outputs.text_b is null) <> (givens.text_b is null))::integer as n_miscarried,
    abs($per_text * (1 + (givens.text_b is not null)::integer) - coalesce(drawn.n_sentences, 0)) as sentences_gap,
    abs(coalesce(outputs.n_tokens_out, 0) - coalesce(drawn.n_sentences, 0)) as sentences_out_gap,
    abs(coalesce(outputs.n_words_out, 0) - coalesce(drawn.n_words, 0)) as words_out_gap,
    coalesce(drawn.n_unclear, 0) as n_unclear,
    coalesce(drawn.n_foreign, 0) as n_foreign,
    coalesce(drawn.n_misplaced, 0) as n_misplaced,
    coalesce(drawn.n_mispriced, 0) as n_mispriced,
    coalesce(
        abs(outputs.epsilon_spent - drawn.epsilon) / greatest(1, drawn.epsilon), 'infinity'::double
    ) as epsilon_difference
from outputs
full join givens on givens.dataset = outputs.dataset and givens.doc_id = outputs.doc_id
full join drawn
    on drawn.dataset = coalesce(outputs.dataset, givens.dataset)
    and drawn.doc_id = coalesce(outputs.doc_id, givens.doc_id)
order by dataset, doc_id
