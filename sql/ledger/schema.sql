-- The tables of the budget ledger, in a new database. Amounts are whole nano-epsilon.
--
-- PostgreSQL has blob as a domain over bytea, nothing in place of `without rowid`, and for `spends` an index of ranges
-- of releases in place of the key.
--
-- entries   the chain; everything else but subjects' hashes and amounts can be made again from it
-- releases  budget, cap and reserved_seq are null until something is reserved; cap is null if there was none
-- files     what a release writes: partial is where, final is where it goes, null until it is written
-- spends    what each subject pays for a release; none of a release that was aborted
-- balances  what each subject has spent in all: the sum of its spends; none of who has none; mac is its keyed hash
-- names     keys in clear, only in a ledger of plain keys
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
