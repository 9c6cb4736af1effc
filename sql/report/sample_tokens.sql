-- Output of one run for each sample: the text, and the action and output row of each token.
--
-- reads    samples (number, dataset, doc_id, field), documents (dataset, doc_id, text, text_b), tokens (dataset, doc_id,
--          field, position, action, word_id): the rewritten documents and the token log of the run
-- key      number
-- ordered  by key
select
    number,
    any_value(case field when 'text' then documents.text else documents.text_b end) as output,
    list(tokens.action::varchar order by tokens.position) filter (where tokens.position is not null) as actions,
    list(tokens.word_id order by tokens.position) filter (where tokens.position is not null) as word_ids
from samples
join documents using (dataset, doc_id)
left join tokens using (dataset, doc_id, field)
group by number
order by number
