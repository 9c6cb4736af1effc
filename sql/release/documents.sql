-- Output and inconsistencies of each document of a release before its publication. The query reads only the output, and
-- the disclosed facts about every token: its action and its epsilon.
--
-- reads    outputs (row, text): texts of all text columns, one per line; row from 1, null if the row was not requested
--          tokens (row, epsilon): one row per token
-- params   $budget of each document, $spent_most, $spent_mean: values of the privacy record
--          $emails, $phones, $numbers, $handles, $urls: patterns (RE2) that no output may match
-- key      row
-- ordered  by row, so that totals are added in one order
--
-- Facts about the whole release are repeated in every row. A word is a sequence of letters and digits.
with accounts as (
    select
        row,
        count(*) as n_tokens,
        sum(epsilon) as epsilon_spent
    from tokens
    group by row
),
documents as (
    select
        outputs.row,
        coalesce(outputs.text, '') as text,
        len(regexp_extract_all(coalesce(outputs.text, ''), '[\p{L}\p{N}]+')) as n_words_out,
        coalesce(n_tokens, 0) as n_tokens,
        coalesce(epsilon_spent, 0) as epsilon_spent
    from outputs
    left join accounts on accounts.row = outputs.row
    where outputs.row is not null
)
select
    row,
    n_tokens,
    n_words_out,
    epsilon_spent,
    n_words_out / greatest(n_tokens, 1) as length_ratio,
    (epsilon_spent - $budget) / greatest($budget, 1) as epsilon_overrun,
    abs(max(epsilon_spent) over () - $spent_most) / greatest($spent_most, 1) as most_gap,
    abs(avg(epsilon_spent) over () - $spent_mean) / greatest($spent_mean, 1) as mean_gap,
    (select count(*) from tokens where row not in (select row from documents)) as n_stray_tokens,
    (select count(*) from outputs where row is null) as n_stray,
    len(regexp_extract_all(text, $emails)) as n_emails,
    len(regexp_extract_all(text, $phones)) as n_phones,
    len(regexp_extract_all(text, $numbers)) as n_numbers,
    len(regexp_extract_all(text, $handles)) as n_handles,
    len(regexp_extract_all(text, $urls)) as n_urls
from documents
order by row
