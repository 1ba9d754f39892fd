package main

import "github.com/loci-memory/loci/db"

func broken(of string, err error, remedy string) db.Finding {
	return db.Finding{Of: of, State: db.Broken, Text: err.Error(), Remedy: remedy}
}
