-- What came out of each document of a release that is about to appear, and what does not add up: by the output and by what
-- is disclosed of every token, its fate and its epsilon, and by nothing else.
--
-- reads    outputs (row, text): texts of all text columns, a line each; row from 1, null where it was not asked for
--          tokens (row, epsilon): one row per token
-- params   $budget of each document, $spent_most, $spent_mean: what the record says
--          $emails, $phones, $numbers, $handles, $urls: patterns (RE2) that no output may match
-- key      row
-- ordered  by row, so that totals are taken in one order
--
-- What is said of the whole release stands in every row. A word is a run of letters and digits.
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
