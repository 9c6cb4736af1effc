-- The tables of the budget ledger, in a new database. Amounts are whole nano-epsilon.
--
-- On PostgreSQL, blob is a domain over bytea, `without rowid` is left out, and `spends` has an index of ranges of
-- releases instead of the key.
--
-- entries   the chain, from which everything else except subjects' hashes and amounts can be restored
-- releases  budget, cap and reserved_seq are null until something is reserved; cap is null if there was none
-- files     files of a release: partial is the path while it is written, final the path of the output, null until then
-- spends    charge of each subject for a release; an aborted release has no rows
-- balances  total of each subject, the sum of its spends; no row without spends; mac is the keyed hash of the row
-- names     plain keys of subjects, only in a ledger of plain keys
create table meta (name text primary key, value text not null) without rowid;
create table entries (
    seq integer primary key,
    time text not null,
    release text,
    kind text not null,
    payload text not null,
    previous text not null,
    hash text not null unique
);
create index entries_of_release on entries (release);
create table releases (
    number integer primary key,
    id text not null unique,
    state text not null check (
        state in ('open', 'reserved', 'spent', 'written', 'committed', 'aborted', 'failed')
    ),
    budget bigint,
    cap bigint,
    reserved_seq integer
);
create table files (
    release integer not null,
    partial blob not null,
    final blob,
    sha256 text,
    primary key (release, partial)
) without rowid;
create table spends (
    release integer not null,
    subject blob not null,
    nano bigint not null check (nano > 0),
    primary key (release, subject)
) without rowid;
create index spends_of_subject on spends (subject, nano);
create table balances (
    subject blob primary key,
    nano bigint not null check (nano >= 0),
    mac blob not null
) without rowid;
create table names (subject blob primary key, key text not null) without rowid;
