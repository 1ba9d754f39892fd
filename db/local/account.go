package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that Postgres runs as: this process's own, or, for root, an unprivileged one, because Postgres
// refuses to run as root.
type account struct {
	name string
	// credential switches a child to the user, without the groups of root; nil where it is this process's own.
	credential *syscall.Credential
}

// accountFor returns the account for a cluster in data: the owner of data, if it exists.
func accountFor(data string) (account, error) {
	own := os.Geteuid()
	owner := own
	stat, err := status(data)
	if err == nil {
		owner = int(stat.Uid)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return account{}, fmt.Errorf("look at %s: %w", data, err)
	}
	switch {
	case owner == 0 && own == 0:
		return unprivileged()
	case owner == own:
		return account{name: name(own)}, nil
	case own == 0:
		return account{name(owner), &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}, nil
	}
	return account{}, fmt.Errorf("the data in %s belongs to user %s, not to %s: start Loci as that user, "+
		"or set LOCI_HOME to another directory", data, name(owner), name(own))
}

func unprivileged() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return account{name, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, errors.New("root may not run Postgres, and there is no user postgres or nobody to run it as: " +
		"start Loci as an ordinary user, or add one with: useradd --system postgres")
}

// uid returns the number of the account's user.
func (a account) uid() int {
	if a.credential == nil {
		return os.Geteuid()
	}
	return int(a.credential.Uid)
}

// status returns the owner and the mode of the file at path.
func status(path string) (*syscall.Stat_t, error) {
	var stat syscall.Stat_t
	if err := syscall.Lstat(path, &stat); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return &stat, nil
}

func name(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// canEnter returns an error that names the directory if the account may not enter dir or one of its parents.
func (a account) canEnter(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		open, err := a.mayEnter(at)
		if err != nil {
			return fmt.Errorf("look at %s: %w", at, err)
		}
		if !open {
			return fmt.Errorf("user %s, whom Postgres runs as, may not enter %s: "+
				"set LOCI_HOME to a directory open to that user, or open this one with: chmod a+x %s", a.name, at, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// mayEnter applies the permission bits as the system does: the first of owner, group and others that matches decides.
func (a account) mayEnter(dir string) (bool, error) {
	if a.credential == nil {
		return true, nil // this process gets an error when it tries
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil {
		return false, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	switch {
	case stat.Uid == a.credential.Uid:
		return stat.Mode&0o100 != 0, nil
	case stat.Gid == a.credential.Gid:
		return stat.Mode&0o010 != 0, nil
	}
	return stat.Mode&0o001 != 0, nil
}
