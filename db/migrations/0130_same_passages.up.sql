-- Passages that say the same are one. Two texts do if they differ only in spaces, in the full stop at their end, or in
-- case; case counts where a text has code or an identifier: a word with _, with a capital letter behind a small one or
-- beside a digit, or a sign of code, a path or an address.
CREATE FUNCTION same_text(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN (
		SELECT CASE WHEN plain ~ ('\w_\w|[[:lower:]][[:upper:]]|[[:upper:]]\d|\d[[:upper:]]|[[:alpha:]][./:@\\][[:alpha:]]|' ||
				'\w\(|::|[-=]>|==|[`{}<>\[\]]|\$\w|--\w')
			THEN plain ELSE lower(plain) END
		FROM (SELECT rtrim(regexp_replace(btrim(regexp_replace(said, '\s+', ' ', 'g')), '([^.])[.。]$', '\1')) AS plain) read
	);
CREATE INDEX passages_same ON passages (org, archive_key, hashtextextended(same_text(text), 0));

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
