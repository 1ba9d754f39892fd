package agentfile

import (
	"github.com/loci-memory/loci/db"
)

// agentID gives a field the id of an agent of the file in place of the one that it has there.
func (i *imports) agentID(field *string) error {
	id, ok := i.agentIDs[*field]
	if !ok {
		return db.Invalid("agent_id: the file has no agent %q", db.Short(*field))
	}
	*field = id
	return nil
}

// id gives a field the id that the object gets.
func (i *imports) id(prefix string, field *string) (err error) {
	*field, err = i.ids.of(prefix, *field)
	return err
}

// conversation gives a field the id of a conversation of the file in place of the one that it has there.
func (i *imports) conversation(field *string) error {
	was := *field
	if err := i.id("conv-", field); err != nil || i.conversations[*field] {
		return err
	}
	return db.Invalid("conversation_id: the file has no conversation %q before this", db.Short(was))
}

// provenance gives the ids of a provenance those that the import gives; the key is left out.
func (i *imports) provenance(field **db.Provenance) (err error) {
	*field, err = (*field).Imported(i.ids.any)
	return err
}

// makers is provenance of who made and last changed something.
func (i *imports) makers(m *db.Makers) error {
	return firstOf(i.provenance(&m.MadeBy), i.provenance(&m.ChangedBy))
}

// author is provenance of an author.
func (i *imports) author(field *db.Provenance) error {
	now, err := field.Imported(i.ids.any)
	if *field = (db.Provenance{}); now != nil {
		*field = *now
	}
	return err
}

func firstOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
