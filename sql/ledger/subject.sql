-- Charges of one subject by release, in order.
--
-- reads    spends (release, subject, nano), releases (number, id, state, reserved_seq), entries (seq, time)
-- params   $subject: hash
-- key      id
-- ordered  by the time of the reservation
select releases.id, releases.state, entries.time, spends.nano
from releases
inner join spends on spends.release = releases.number and spends.subject = $subject
inner join entries on entries.seq = releases.reserved_seq
order by releases.reserved_seq
