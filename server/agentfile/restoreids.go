package agentfile

import (
	"github.com/loci-memory/loci/db"
)

// agentID replaces the id of an agent in a field: the id in the file by the id of the imported agent.
func (i *imports) agentID(field *string) error {
	id, ok := i.agentIDs[*field]
	if !ok {
		return db.Invalid("agent_id: the file has no agent %q", db.Short(*field))
	}
	*field = id
	return nil
}

// ownerID is agentID for what may be attached to no agent, because it is a user's.
func (i *imports) ownerID(field *string) error {
	if *field == "" {
		return nil
	}
	return i.agentID(field)
}

// id replaces the id of an object in a field by the id that the import gives it.
func (i *imports) id(prefix string, field *string) (err error) {
	*field, err = i.ids.of(prefix, *field)
	return err
}

// conversation replaces the id of a conversation in a field by its new id. ErrInvalid if no such conversation came
// before.
func (i *imports) conversation(field *string) error {
	previous := *field
	if err := i.id("conv-", field); err != nil || i.conversations[*field] {
		return err
	}
	return db.Invalid("conversation_id: the file has no conversation %q before this", db.Short(previous))
}

// provenance replaces the ids in a provenance by the new ones, and drops the key.
func (i *imports) provenance(field **db.Provenance) (err error) {
	*field, err = (*field).Imported(i.ids.any)
	return err
}

// makers applies provenance to who made and who last changed something.
func (i *imports) makers(m *db.Makers) error {
	return firstOf(i.provenance(&m.MadeBy), i.provenance(&m.ChangedBy))
}

// author applies provenance to an author.
func (i *imports) author(field *db.Provenance) error {
	imported, err := field.Imported(i.ids.any)
	if *field = (db.Provenance{}); imported != nil {
		*field = *imported
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
