#!/bin/sh
# Makes configure and Makefile.in from configure.ac and the Makefile fragments.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --warnings=all,no-obsolete
