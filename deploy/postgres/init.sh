#!/usr/bin/env bash
# For the postgres image, which runs what is in /docker-entrypoint-initdb.d when it makes a new cluster: the roles, and their passwords
# from the environment. \getenv reads them inside psql, so that they are on no command line.
set -euo pipefail

psql=(psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB")
"${psql[@]}" --file /settled/roles.sql
"${psql[@]}" <<'SQL'
\getenv owner SETTLED_OWNER_PASSWORD
\getenv runtime SETTLED_RUNTIME_PASSWORD
\getenv auditor SETTLED_AUDITOR_PASSWORD
ALTER ROLE settled_owner PASSWORD :'owner';
ALTER ROLE settled_runtime PASSWORD :'runtime';
ALTER ROLE settled_auditor PASSWORD :'auditor';
SQL
