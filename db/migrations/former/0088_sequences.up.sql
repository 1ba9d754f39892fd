-- Keys come from sequences: Citus distributes no table with an identity column. Each sequence goes on where the identity
-- column was.
DO $$
DECLARE
	c    record;
	next bigint;
BEGIN
	FOR c IN
		SELECT a.attrelid::regclass AS of, r.relname, a.attname, format_type(a.atttypid, -1) AS type,
		       pg_get_serial_sequence(a.attrelid::regclass::text, a.attname) AS sequence
		FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
		WHERE a.attidentity <> '' AND r.relnamespace = current_schema()::regnamespace AND r.relname NOT LIKE 'river\_%'
		ORDER BY r.relname
	LOOP
		EXECUTE format('SELECT last_value + is_called::int FROM %s', c.sequence) INTO next;
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', c.of, c.attname);
		EXECUTE format('CREATE SEQUENCE %I AS %s START WITH %s OWNED BY %s.%I', c.relname || '_' || c.attname || '_seq',
		               c.type, next, c.of, c.attname);
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L)', c.of, c.attname,
		               c.relname || '_' || c.attname || '_seq');
	END LOOP;
END $$;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
