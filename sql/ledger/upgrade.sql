-- Bring a ledger of form 1 to form 2, in which a release can also be spent or failed, and a balance has a keyed hash.
--
-- reads    releases (number, id, state, budget, cap, reserved_seq), of form 1
-- writes   releases, of form 2, and balances (mac)
-- uses     mac(subject, nano): the keyed hash of a balance
create table releases_of_form_2 (
    number integer primary key,
    id text not null unique,
    state text not null check (
        state in ('open', 'reserved', 'spent', 'written', 'committed', 'aborted', 'failed')
    ),
    budget integer,
    cap integer,
    reserved_seq integer
);
insert into releases_of_form_2 select number, id, state, budget, cap, reserved_seq from releases;
drop table releases;
alter table releases_of_form_2 rename to releases;
create index spends_of_subject on spends (subject, nano);
create table balances_of_form_2 (
    subject blob primary key,
    nano integer not null check (nano >= 0),
    mac blob not null
) without rowid;
insert into balances_of_form_2 select subject, nano, mac(subject, nano) from balances;
drop table balances;
alter table balances_of_form_2 rename to balances
