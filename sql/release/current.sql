-- The newest version of every document that was released and not withdrawn.
--
-- reads    archived (every column of the releases' files, filename, file_row_number)
--          marks (release, place, state): the result of sql/release/index.sql
-- params   $stamp, $is_stamped: select only releases whose name contains the stamp, or only the others
-- key      id of the document
-- ordered  by release and place
select archived.* exclude (filename, file_row_number)
from archived
join marks on marks.release = parse_path(archived.filename)[-2] and marks.place = archived.file_row_number
where marks.state = 'current' and contains(marks.release, $stamp) = $is_stamped
order by marks.release, marks.place
